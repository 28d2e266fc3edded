"""Forms of lines that a language model was asked about, and what it said."""
