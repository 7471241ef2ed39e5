"""The verb `convert`: converts traces between formats."""
