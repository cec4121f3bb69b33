"""The only sockets to RocketMQ: connections, routes, and one typed call for each request that we make."""
