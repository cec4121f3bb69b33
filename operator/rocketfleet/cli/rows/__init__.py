"""What commands show, made purely from what brokers and the API server say."""
