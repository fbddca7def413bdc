"""The description of the API that `/openapi.json` answers."""
