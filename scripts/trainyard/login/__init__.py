"""Log-in by OpenID Connect: the issuer, the ways to a token, where tokens are kept, and what kubectl is told."""
