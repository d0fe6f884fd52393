"""What a real API server with the rendered platform would say to a user's manifests."""
