package api

import (
	"net/http"
	"reflect"
	"slices"

	"headgate/internal/config"
	"headgate/internal/notice"
)

// The areas that the scopes of tokens name.
const (
	areaAccess       = "access"
	areaBackup       = "backup"
	areaBans         = "bans"
	areaCache        = "cache"
	areaCertificates = "certificates"
	areaConfig       = "config"
	areaCutover      = "cutover"
	areaEvents       = "events"
	areaLogs         = "logs"
	areaNodes        = "nodes"
	areaNotices      = "notices"
	areaOperators    = "operators"
	areaPorts        = "ports"
	areaServers      = "servers"
	areaSession      = "session"
	areaStatus       = AreaStatus
	areaWebhooks     = "webhooks"
)

// AreaStatus is the area of the status.
const AreaStatus = "status"

// Why some rows cannot be tried out.
const (
	noDrySignIn = "signing in or out cannot be tried without doing it"
	noDryTOTP   = "an authenticator cannot be tried without keeping its secret"
	noDryAnswer = "nothing is changed: the answer is all that is done"
)

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// whole is the table with the rows of the configuration.
func (a *API) whole() []row {
	rows := slices.Concat(
		a.table(),
		a.orderRows(),
		a.storedRows(),
		a.compareRows(),
		a.cutoverRows(),
		a.importRows(),
		a.banRows(),
		a.peopleRows(),
		a.gateTokenRows(),
		a.gateLinkRows(),
		a.queueRows(notice.Webhooks, areaWebhooks, "webhook"),
		a.queueRows(notice.Notices, areaNotices, "notice"),
	)
	for _, k := range config.Kinds() {
		rows = append(rows, a.documentRows(k)...)
	}
	return slices.Concat(rows, a.configRows(), a.serverRows(), a.portRows(), a.upgradeRows(), a.nodeRows(), a.pairRows())
}

// table is all that the API does. Paths are below Prefix.
func (a *API) table() []row {
	const get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	created, users, tokens := http.StatusCreated, paging("name", "role", "created"), paging("name", "role", "created", "used")
	return []row{
		{method: get, path: "/version", access: viewer, area: areaStatus, out: of[Version](), handle: a.version,
			about: "Tells the version of the program and of this interface."},
		{method: get, path: "/openapi.json", steady: true, access: public, handle: a.openAPI,
			about: "Gives this interface as an OpenAPI 3.1 document."},

		{method: get, path: "/setup", access: public, out: of[setupState](), handle: a.setupState,
			about: "Tells whether the first user has to be made, and how people can sign in."},
		{method: post, path: "/setup", may: []int{429}, access: public, in: of[setupInput](), out: of[sessionStarted](), status: created, noDry: noDrySignIn, handle: withBody(a.setUp),
			about: "Makes the first user, an admin, with the token of the set-up link, and signs it in."},
		{method: get, path: "/session", access: viewer, area: areaSession, out: of[whoAmI](), handle: a.session,
			about: "Tells who is asking, and what that may do."},
		{method: post, path: "/session", may: []int{401, 429}, access: public, in: of[signInInput](), out: of[sessionStarted](), status: created, noDry: noDrySignIn, handle: withBody(a.signIn),
			about: "Signs in with a name and a password, and a code if the user has an authenticator."},
		{method: del, path: "/session", access: public, noDry: noDrySignIn, handle: a.signOut,
			about: "Signs out: ends the session of the cookie."},
		{method: put, path: "/session/password", may: []int{429}, access: viewer, area: areaSession, in: of[passwordInput](), dry: true, handle: withBody(a.changePassword),
			about: "Changes the own password; all own sessions end."},
		{method: post, path: "/session/totp", may: []int{429}, access: viewer, area: areaSession, in: of[verifyInput](), out: of[enrolment](), noDry: noDryTOTP, handle: withBody(a.beginTOTP),
			about: "Makes a secret for the own authenticator, to be proven by a code."},
		{method: put, path: "/session/totp", may: []int{429}, access: viewer, area: areaSession, in: of[codeInput](), out: of[recoveryCodes](), noDry: noDryTOTP, handle: withBody(a.finishTOTP),
			about: "Takes a code of the new authenticator, and gives the recovery codes, which are shown once."},
		{method: post, path: "/session/oidc", may: []int{404, 429, 502}, access: public, in: of[empty](), out: of[oidcStart](), noDry: noDrySignIn, handle: withBody(a.beginOIDC),
			about: "Tells where a browser is sent to sign in through the provider."},
		{method: put, path: "/session/oidc", may: []int{401, 404, 429, 502}, access: public, in: of[oidcInput](), out: of[sessionStarted](), status: created, noDry: noDrySignIn, handle: withBody(a.finishOIDC),
			about: "Signs in with what the provider has sent back to the console's page."},

		{method: get, path: "/sessions", access: viewer, area: areaSession, out: of[sessionBody](), list: true, query: paging("created", "user"), handle: a.sessions,
			about: "Lists sessions: those of all for an admin, else the own ones."},
		{method: del, path: "/sessions/{name}", access: viewer, area: areaSession, dry: true, handle: a.revokeSession,
			about: "Ends a session: any for an admin, else an own one."},

		{method: get, path: "/users", access: admin, area: areaOperators, out: of[userBody](), list: true, query: users, handle: a.users,
			about: "Lists users."},
		{method: post, path: "/users", may: []int{409}, access: admin, area: areaOperators, in: of[userBody](), out: of[userBody](), status: created, dry: true, handle: withBody(a.createUser),
			about: "Makes a user."},
		{method: get, path: "/users/{name}", access: admin, area: areaOperators, out: of[userBody](), handle: a.user,
			about: "Gives one user."},
		{method: put, path: "/users/{name}", may: []int{409}, access: admin, area: areaOperators, in: of[userBody](), out: of[userBody](), match: true, dry: true, handle: withBody(a.putUser),
			about: "Replaces a user; without a password that stays. A new password, or being disabled, ends the user's sessions."},
		{method: patch, path: "/users/{name}", may: []int{409}, access: admin, area: areaOperators, in: of[userBody](), out: of[userBody](), match: true, dry: true, current: a.user, handle: withBody(a.putUser),
			about: "Changes what the body names of a user (RFC 7396)."},
		{method: del, path: "/users/{name}", may: []int{409}, access: admin, area: areaOperators, match: true, dry: true, handle: a.deleteUser,
			about: "Removes a user; all its sessions end."},
		{method: del, path: "/users/{name}/totp", access: admin, area: areaOperators, out: of[userBody](), dry: true, handle: a.removeTOTP,
			about: "Takes the authenticator off a user who has lost it."},

		{method: get, path: "/tokens", access: admin, area: areaOperators, out: of[tokenBody](), list: true, query: tokens, handle: a.tokens,
			about: "Lists tokens, without their text."},
		{method: post, path: "/tokens", may: []int{409}, access: admin, area: areaOperators, in: of[tokenBody](), out: of[tokenBody](), status: created, dry: true, handle: withBody(a.createToken),
			about: "Makes a token. Its text is in this answer and never shown again."},
		{method: get, path: "/tokens/{name}", access: admin, area: areaOperators, out: of[tokenBody](), handle: a.token,
			about: "Gives one token, without its text."},
		{method: del, path: "/tokens/{name}", access: admin, area: areaOperators, match: true, dry: true, handle: a.revokeToken,
			about: "Revokes a token."},

		{method: post, path: "/backup", may: []int{404}, access: admin, area: areaBackup, in: of[backupInput](), media: archiveMedia, noDry: noDryAnswer, stream: a.backup,
			about: "Gives one archive of everything in the state directory."},
		{method: post, path: "/restore", access: admin, area: areaBackup, out: of[changeBody](), upload: archiveMedia, match: true, write: true, dry: true, query: changeQuery, handle: a.restore,
			about: "Restores an archive: applies its configuration files as a change, with its users, tokens and certificates. All sessions end. If-Match names the ETag of the configuration. Unless it is confirmed within confirm_within, users and tokens come back too."},
		{method: get, path: "/audit", access: admin, area: areaOperators, out: of[auditBody](), list: true, query: auditQuery, handle: a.audit,
			about: "Tells who did what, the newest first, with before and after."},
		{method: get, path: "/discovery", access: viewer, area: areaStatus, out: of[discoveryBody](), handle: a.discovery,
			about: "Shows the state of discovery providers, and the issues of what they found."},
		{method: get, path: "/events", access: viewer, area: areaEvents, query: eventQuery, stream: a.events,
			about: "Streams events as they come (text/event-stream). Last-Event-ID goes on after an event."},
		{method: get, path: "/events/history", access: viewer, area: areaEvents, out: of[eventBody](), list: true, query: historyQuery, handle: a.history,
			about: "Lists kept events, the newest first."},
		{method: get, path: "/logs/access", access: viewer, area: areaLogs, out: of[requestBody](), list: true, query: logQuery(true), handle: a.logs,
			about: "Lists recent requests, the newest first."},
		{method: get, path: "/logs/access/stream", access: viewer, area: areaLogs, query: logQuery(false), stream: a.followLogs,
			about: "Streams requests as they end (text/event-stream)."},
	}
}

// queueRows are the rows of webhooks and notices, which are delivered by the same queue.
func (a *API) queueRows(kind notice.Kind, area, noun string) []row {
	return []row{
		{method: http.MethodGet, path: "/" + area + "/{name}/state", access: viewer, area: area, out: of[queueState](), handle: a.queueState(kind),
			about: "Returns the state of a " + noun + ", with the messages that wait and those that could not be delivered."},
		{method: http.MethodPost, path: "/" + area + "/{name}/test", access: editor, area: area, in: of[empty](), out: of[queueTest](), noDry: "a test message that is not sent tests nothing", handle: withBody(a.testQueue(kind)),
			about: "Sends a test message of a " + noun + " immediately and returns the result."},
		{method: http.MethodPost, path: "/" + area + "/{name}/resend", access: editor, area: area, in: of[resendInput](), dry: true, handle: withBody(a.resend(kind)),
			about: "Sends a dead letter of a " + noun + " again, for up to another day."},
	}
}
