"""Stand-ins for Azure services that speak the services' wire protocols."""
