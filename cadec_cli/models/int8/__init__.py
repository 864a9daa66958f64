"""Operations of int8 networks, compiled when cadec is installed; without them torch does the same, slower."""
