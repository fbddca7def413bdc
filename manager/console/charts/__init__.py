"""Charts as SVG, made on the server: pure functions from figures to markup, coloured by the style sheet."""
