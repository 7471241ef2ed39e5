"""Endpoints: the objects through which producers, consumers and relays use the service."""
