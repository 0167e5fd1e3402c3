package timeout

import "headgate/internal/exchange"

// Compile returns the filter that bounds the time until a server's response
// head, for each attempt.
func Compile(c *Config, _ exchange.Env) (exchange.Filter, error) {
	limit := c.D()
	return exchange.Filter{
		Name: "request_timeout",
		Request: func(ex *exchange.Exchange) *exchange.Answer {
			ex.Limits.RequestTimeout = limit
			return nil
		},
	}, nil
}
