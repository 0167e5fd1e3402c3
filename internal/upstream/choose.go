package upstream

import "headgate/internal/exchange"

// choose returns the server for the next try of ex, one that was not tried, and its
// place in the route's list; nil if there is none.
func (s *Servers) choose(_ *exchange.Exchange, tried tried) (*Server, int) {
	return s.balance.pick(tried)
}

// none returns the answer for a request that no server can take.
func (s *Servers) none() *exchange.Answer {
	return &exchange.Answer{Reason: exchange.NoHealthyServer, RetryAfter: retryAfter, Cause: "all servers of the route have weight 0"}
}

// retryAfter is what a client is told to wait when no server can answer, in
// seconds.
const retryAfter = 5

// tell counts a try. A client that went away says nothing about the server.
func (s *Server) tell(failure *exchange.Error) {
	switch {
	case s.tried == nil:
	case failure == nil:
		s.tried(exchange.None)
	case failure.Reason != exchange.ClientClosed:
		s.tried(failure.Reason)
	}
}
