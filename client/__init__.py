"""The project folder of the wheel `foretune`, what people install to use a portal."""
