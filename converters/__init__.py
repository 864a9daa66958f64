"""Models of this and other toolkits to CTranslate2."""
