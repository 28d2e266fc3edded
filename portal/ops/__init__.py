"""Operations: launch, backup, demo data, health and logs."""
