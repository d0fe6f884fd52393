"""Log-in by OpenID Connect: issuer, ways to get a token, storage of tokens, and kubectl's configuration."""
