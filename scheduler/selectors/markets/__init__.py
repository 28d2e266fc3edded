"""Reading markets: for pages, programs and policies."""
