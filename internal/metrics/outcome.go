package metrics

import (
	"net/http"
	"strconv"

	"headgate/internal/exchange"
)

// outcomes counts requests by method and status. Both have few values whatever clients
// and servers send: unknown methods are one, and statuses that have no
// name are counted by their class. A method gets its row with its first request.
type outcomes [len(methodNames)]*[maxStatuses]uint64

// methodNames are the values of the label method.
var methodNames = [...]string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "other"}

// methodIndex returns the place of a method.
func methodIndex(method string) int {
	switch method {
	case "GET":
		return 0
	case "HEAD":
		return 1
	case "POST":
		return 2
	case "PUT":
		return 3
	case "DELETE":
		return 4
	case "PATCH":
		return 5
	case "OPTIONS":
		return 6
	case "CONNECT":
		return 7
	case "TRACE":
		return 8
	}
	return len(methodNames) - 1
}

// maxStatuses is how many values the label status has at most.
const maxStatuses = 80

// statusPlaces are the places of statuses, statusNames the values of the label at these
// places: first the classes.
var statusPlaces, statusNames = statuses()

func statuses() (places [600]uint8, names []string) {
	for class := range classes {
		names = append(names, statusClass(class))
	}
	for code := range places {
		if http.StatusText(code) == "" && code != exchange.StatusClientClosed {
			places[code] = uint8(code / 100)
			continue
		}
		places[code] = uint8(len(names))
		names = append(names, strconv.Itoa(code))
	}
	return places, names
}

// count counts a request.
func (o *outcomes) count(method string, status int) {
	row := &o[methodIndex(method)]
	if *row == nil {
		*row = new([maxStatuses]uint64)
	}
	at := uint8(0)
	if uint(status) < uint(len(statusPlaces)) {
		at = statusPlaces[status]
	}
	(*row)[at]++
}

// join adds the numbers of other.
func (o *outcomes) join(other *outcomes) {
	for i, row := range other {
		if row == nil {
			continue
		}
		if o[i] == nil {
			o[i] = new([maxStatuses]uint64)
		}
		for at, n := range row {
			o[i][at] += n
		}
	}
}

// each calls f for each method and status that were counted.
func (o *outcomes) each(f func(method, status string, n uint64)) {
	for i, row := range o {
		if row == nil {
			continue
		}
		for at, n := range row {
			if n > 0 {
				f(methodNames[i], statusNames[at], n)
			}
		}
	}
}
