"""Translation models of other toolkits, as CTranslate2 models with their tokenizers."""
