"""Operations of int8 networks, compiled when cadec is installed; torch is the slower fallback."""
