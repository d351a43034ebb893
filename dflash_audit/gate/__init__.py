"""The gate: which findings fail an audit, as whoever runs it decides. No verdict hangs on it."""
