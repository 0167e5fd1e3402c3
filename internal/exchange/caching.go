package exchange

// Caching is what a cache notes of an exchange.
type Caching struct {
	// Use is what the cache made of the request.
	Use CacheUse
	// Server is the URL of the server that answered when the stored response came
	// which is sent now, or "" when none is.
	Server string
}

// Views is what a Body can do whose bytes lie in memory, in pieces.
type Views interface {
	// View returns the next bytes of the body without a copy. They are valid until
	// Close. It returns io.EOF when there are no more, and nothing when they are
	// not in memory: then they are read.
	View() ([]byte, error)
}

// CacheUse is how a cache handled a request, for the access log and metrics.
type CacheUse uint8

// The uses.
const (
	// NoCache says that the route has no cache, or that it was not reached.
	NoCache CacheUse = iota
	// CacheHit is a stored response that was fresh, or that the client took stale.
	CacheHit
	// CacheStale is a stored response that was stale: while it was being asked
	// for anew, or because the servers failed.
	CacheStale
	// CacheRevalidated is a stored response that a server said is still good.
	CacheRevalidated
	// CacheCollapsed is a response that another request was fetching already.
	CacheCollapsed
	// CacheMiss is a response that a server had to make.
	CacheMiss
	// CachePass is a request that is not for a cache.
	CachePass
	cacheUses
)

var cacheUseWords = [cacheUses]string{"", "hit", "stale", "revalidated", "collapsed", "miss", "pass"}

// String returns the word of the use, "" for NoCache.
func (u CacheUse) String() string { return cacheUseWords[u] }

// CacheUses returns all uses but NoCache.
func CacheUses() []CacheUse {
	all := make([]CacheUse, 0, cacheUses-1)
	for u := NoCache + 1; u < cacheUses; u++ {
		all = append(all, u)
	}
	return all
}
