"""Sign-in for programs by the device grant (RFC 8628).

The program shows a code, a person confirms it in a browser, and the program gets a token of theirs.
"""
