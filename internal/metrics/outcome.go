package metrics

import (
	"cmp"
	"iter"
	"net/http"
	"slices"
	"strconv"

	"headgate/internal/exchange"
)

// outcome is how many requests had a method and a status. Both have few values whatever
// clients and servers send: unknown methods are one, and statuses that have no
// name are counted by their class.
type outcome struct {
	n      uint64
	method uint8
	status uint8 // its place in statusNames
}

// maxInlineOutcomes is the number of pairs of a method and a status that a route stores
// inline. Most routes have few pairs; with more, rows for all are allocated.
const maxInlineOutcomes = 6

// few is the number of requests with a method and a status, 0 for a free pair. What
// exceeds it is in the rows.
type few struct {
	n              uint32
	method, status uint8
}

// outcomeRows is how many requests had each method and status.
type outcomeRows [len(methodNames)][maxStatuses]uint64

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

// outcome counts a request.
func (n *routeNumbers) outcome(method string, status int) {
	m, place := uint8(methodIndex(method)), uint8(0)
	if uint(status) < uint(len(statusPlaces)) {
		place = statusPlaces[status]
	}
	for i := range n.few {
		f := &n.few[i]
		if f.n == 0 {
			f.method, f.status = m, place
		}
		if f.method == m && f.status == place {
			if f.n++; f.n == 0 {
				n.rowed(m, place, 1<<32)
			}
			return
		}
	}
	n.rowed(m, place, 1)
}

// rowed counts requests in the rows.
func (n *routeNumbers) rowed(method, place uint8, count uint64) {
	rare := n.rarely()
	if rare.rows == nil {
		rare.rows = new(outcomeRows)
	}
	rare.rows[method][place] += count
}

// outcomes are the methods and statuses that were counted, by their places. One may come
// twice.
func (n *routeNumbers) outcomes() iter.Seq[outcome] {
	return func(yield func(outcome) bool) {
		for _, f := range n.few {
			if f.n > 0 && !yield(outcome{uint64(f.n), f.method, f.status}) {
				return
			}
		}
		if n.rare == nil || n.rare.rows == nil {
			return
		}
		for m := range n.rare.rows {
			for place, count := range n.rare.rows[m] {
				if count > 0 && !yield(outcome{count, uint8(m), uint8(place)}) {
					return
				}
			}
		}
	}
}

// class returns the class of a status.
func (o *outcome) class() int {
	if o.status < classes {
		return int(o.status)
	}
	return int(statusNames[o.status][0] - '0')
}

// sumOutcomes puts those of the same method and status together, in order.
func sumOutcomes(all []outcome) []outcome {
	slices.SortFunc(all, func(a, b outcome) int {
		return cmp.Or(cmp.Compare(a.method, b.method), cmp.Compare(a.status, b.status))
	})
	kept := all[:0]
	for _, o := range all {
		if n := len(kept); n > 0 && kept[n-1].method == o.method && kept[n-1].status == o.status {
			kept[n-1].n += o.n
			continue
		}
		kept = append(kept, o)
	}
	return kept
}
