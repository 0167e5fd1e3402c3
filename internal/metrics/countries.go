package metrics

import (
	"iter"
	"sync/atomic"

	"headgate/internal/exchange"
)

// countries counts requests by the country of the client and the class of the status. It
// is allocated with the first request for which a geo database is configured: two letters
// make few values, whatever clients and databases contain.
type countries struct {
	at atomic.Pointer[[countryPlaces][classes]atomic.Uint64]
}

// countryPlaces is one place for each pair of letters, and the first for all others.
const countryPlaces = 1 + 26*26

// unknownCountry is the label of public addresses that the database does not contain.
const unknownCountry = "unknown"

// done counts a finished exchange whose client has a country.
func (c *countries) done(ex *exchange.Exchange, status int) {
	country := ex.Country()
	if country == "" {
		return // a private address, or no database is loaded
	}
	all := c.at.Load()
	if all == nil {
		c.at.CompareAndSwap(nil, new([countryPlaces][classes]atomic.Uint64))
		all = c.at.Load()
	}
	class := status / 100
	if uint(class) >= classes {
		class = 0
	}
	all[countryPlace(country)][class].Add(1)
}

// countryPlace returns the place of a country.
func countryPlace(country string) int {
	if len(country) != 2 {
		return 0
	}
	a, b := country[0]-'A', country[1]-'A'
	if a >= 26 || b >= 26 {
		return 0
	}
	return 1 + int(a)*26 + int(b)
}

// countryAt is the reverse of countryPlace.
func countryAt(place int) string {
	if place == 0 {
		return unknownCountry
	}
	return string([]byte{'A' + byte((place-1)/26), 'A' + byte((place-1)%26)})
}

// counts returns the numbers that are not 0, by the labels country and status_class.
func (c *countries) counts() iter.Seq2[[2]string, uint64] {
	return func(yield func([2]string, uint64) bool) {
		all := c.at.Load()
		if all == nil {
			return
		}
		for place := range all {
			for class := range all[place] {
				if n := all[place][class].Load(); n > 0 && !yield([2]string{countryAt(place), statusClass(class)}, n) {
					return
				}
			}
		}
	}
}
