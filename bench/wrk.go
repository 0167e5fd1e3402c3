//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// wrkResult is what wrk counted.
type wrkResult struct {
	requests int
	rate     float64 // requests a second
	failed   int     // socket errors, and answers that are not 2xx or 3xx
}

// parseWrk reads what wrk printed.
func parseWrk(out string) (wrkResult, error) {
	var r wrkResult
	var err error
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case strings.Contains(line, " requests in "):
			r.requests, err = strconv.Atoi(words[0])
		case strings.HasPrefix(line, "Requests/sec:") && len(words) == 2:
			r.rate, err = strconv.ParseFloat(words[1], 64)
		case strings.HasPrefix(line, "Non-2xx or 3xx responses:"):
			var n int
			n, err = strconv.Atoi(words[len(words)-1])
			r.failed += n
		case strings.HasPrefix(line, "Socket errors:"):
			var n int
			n, err = socketErrors(line)
			r.failed += n
		}
		if err != nil {
			return wrkResult{}, fmt.Errorf("wrk said %q: %v", line, err)
		}
	}
	if r.requests == 0 {
		return wrkResult{}, fmt.Errorf("wrk counted no requests:\n%s", out)
	}
	return r, nil
}

// socketErrors adds up "Socket errors: connect 0, read 1, write 2, timeout 3".
func socketErrors(line string) (sum int, err error) {
	_, list, _ := strings.Cut(line, ":")
	for part := range strings.SplitSeq(list, ",") {
		words := strings.Fields(part)
		if len(words) != 2 {
			return 0, fmt.Errorf("socket errors in an unknown form")
		}
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// wrkScript makes wrk ask for the hosts and paths of a setup of many proxies in
// turn. The requests are made before the first is sent.
func wrkScript(proxies int) string {
	return fmt.Sprintf(`local requests, n, i = {}, 0, 0
function init(args)
  for p = 0, %d do
    local host = string.format("%s", (p * 7919) %% %d)
    for _, path in ipairs({"/", "/api/item", "/static/item"}) do
      n = n + 1
      requests[n] = wrk.format("GET", path, {Host = host})
    end
  end
end
function request()
  i = i %% n + 1
  return requests[i]
end
`, proxies-1, hostFormat, proxies)
}
