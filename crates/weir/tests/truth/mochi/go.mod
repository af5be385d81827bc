module weir/mochi

go 1.24.0

require github.com/mochi-mqtt/server/v2 v2.7.9
