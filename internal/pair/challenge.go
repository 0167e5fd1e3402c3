package pair

import (
	"context"
	"errors"
	"strings"
	"time"

	"headgate/internal/store"
)

// challengeWait is how long an authority waits while the leader is asked.
const challengeWait = 2 * time.Second

// maxAsked is how many requests with unknown tokens ask the leader at once. More are
// answered as if the leader did not know the token.
const maxAsked = 8

// Challenge returns the answer to a token of http-01 that this machine does not know yet,
// but the leader may: the authority can be faster than the stream. The leader answers from
// what it has and asks no other machine.
func (s *Store) Challenge(token string) (answer string, ok bool) {
	if s.Role() != Follower || token == "" || strings.Contains(token, "/") || store.CheckKey(store.PrefixChallenge+token) != nil {
		return "", false
	}
	select {
	case s.asked <- struct{}{}:
		defer func() { <-s.asked }()
	default:
		return "", false
	}
	ctx, stop := context.WithTimeout(context.Background(), challengeWait)
	defer stop()
	if err := s.peer.call(ctx, s.peerAddress(), pathChallenge, token, &answer); err != nil {
		return "", false
	}
	return answer, answer != ""
}

// ownChallenge answers the follower; "" if the token is unknown.
func (s *Store) ownChallenge(ctx context.Context, token string) (string, error) {
	if strings.Contains(token, "/") || store.CheckKey(store.PrefixChallenge+token) != nil {
		return "", nil
	}
	e, err := s.o.Files.Get(ctx, store.PrefixChallenge+token)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return string(e.Value), err
}
