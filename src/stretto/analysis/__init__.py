"""Reading and converting traces. Independent of recording."""
