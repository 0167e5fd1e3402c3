package greeting

import (
	"strings"

	"headgate/internal/exchange"
)

// Compile returns the filter that greets.
func Compile(c *Config, env exchange.Env) (exchange.Filter, error) {
	f, err := env.File(c.File)
	if err != nil {
		return exchange.Filter{}, err
	}
	text := strings.TrimSpace(string(f.Content().Data))
	return exchange.Filter{
		Name: "greeting",
		Request: func(ex *exchange.Exchange) *exchange.Answer {
			ex.Request.Header.AddField("Greeting", text)
			return nil
		},
		Response: func(ex *exchange.Exchange) { ex.Response.Header.AddField("Greeting", text) },
	}, nil
}
