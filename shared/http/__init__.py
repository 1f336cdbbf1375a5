"""The one door that every HTTP request passes."""
