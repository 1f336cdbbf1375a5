"""Reading and writing of JSON and CSV text by strict rules."""
