"""What tests of any service are built from: a real NATS server, services in process, a scripted model server."""
