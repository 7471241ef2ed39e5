"""Endpoints: what producers, consumers and relays call on the service."""
