"""Reading traces. Knows nothing of recording them."""
