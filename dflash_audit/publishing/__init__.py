"""A draft on its way to the Hub: the upload after the audit, and the review of a pull request."""
