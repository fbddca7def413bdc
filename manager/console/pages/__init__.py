"""The pages: one module each, with what a page shows as a pure function of what the API says."""
