"""The suite testing itself."""
