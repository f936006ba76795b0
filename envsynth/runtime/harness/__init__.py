"""runtime/harness."""
