"""What commands show; views only draw."""
