// Package storetest holds what every engine of package store must do. An engine's
// test calls Run; what the engine does besides is tested beside it.
package storetest

import (
	"testing"
	"time"

	"headgate/internal/store"
)

// Engine is one engine, ready for a test.
type Engine struct {
	// Store is empty, and a test closes it.
	Store store.Store
	// Again closes Store if it is open and opens the same state anew, as another
	// process would.
	Again func(t *testing.T) store.Store
	// Advance moves the engine's clock on and lets the engine do what is due then,
	// such as removing what has expired.
	Advance func(d time.Duration)
	// Other opens another engine that is empty, of the same kind.
	Other func(t *testing.T) Engine
	// LoseAnswer has the answer of the next commit lost after it was made, and every
	// answer after it until the func that it returns is called. It is nil for an engine
	// without a connection.
	LoseAnswer func(t *testing.T) (restore func())
}

// Run runs the tests on engines that open makes, one for each test.
func Run(t *testing.T, open func(t *testing.T) Engine) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Engine)
	}{
		{"entries are kept", testEntries},
		{"entries outlive the process", testReopen},
		{"revisions grow by one", testRevisions},
		{"conditions hold over several keys", testConditions},
		{"one of many writers wins", testRace},
		{"counting with conditions loses nothing", testCounter},
		{"changes are bounded", testBounds},
		{"a change with a mistake changes nothing", testMistakes},
		{"lists have no values and go on", testList},
		{"snapshots are of one revision", testSnapshot},
		{"entries expire by the engine's clock", testExpiry},
		{"sessions make room for each other", testSessions},
		{"a watch has no gaps", testWatch},
		{"a watch sees its prefix only", testWatchPrefix},
		{"a watch of the past ends", testWatchTooOld},
		{"the log is trimmed by age", testLogAge},
		{"commits form a chain", testChain},
		{"an older copy of the store is noticed", testRewound},
		{"a change is made once", testOnce},
		{"a change whose answer is lost is made once", testLostAnswer},
		{"time is the engine's", testNow},
		{"everything can be moved", testMove},
		{"half an import is refused", testHalfImport},
		{"a store that has moved is frozen", testFreeze},
		{"a watch ends with its context and with the store", testWatchEnds},
		{"a lease is held by one", testLease},
		{"a late change is fenced", testFenced},
		{"records are appended and paged", testStream},
		{"streams are bounded", testRetention},
		{"the audit is in the commit", testAudit},
		{"values belong to the caller", testAliasing},
		{"a closed store says so", testClosed},
		{"contexts are obeyed", testContext},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t)
			t.Cleanup(func() { e.Store.Close() })
			c.test(t, e)
		})
	}
}
