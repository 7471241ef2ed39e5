"""Reading and converting traces. The package doesn't import the recording side."""
