package page

import (
	"strconv"
	"strings"
)

// Texts are the texts of one language.
type Texts struct {
	// Code is the language, such as "de".
	Code string

	SignIn, SignInTo, With                              string
	Redirecting, RedirectingText, Continue              string
	SignedInAs, SignOut, SignedOut, SignedOutText       string
	SignOutQuestion, SignOutText                        string
	Denied, DeniedText, OtherPerson                     string
	ContinueTo, ContinueText, NoSite, NoSiteText        string
	Failed, Expired, Refused, Throttled, Unavailable    string
	TryAgain, Framed, FramedText, Open, Home, NoWay     string
	NeedsHTTPS, NeedsHTTPSText, WrongOrigin, StartTitle string
	LinkText, LinkExpired                               string

	// Local are those of people kept by headgate.
	Local
}

// languages are all languages; the first is for everybody who speaks none of them.
var languages = [...]Texts{
	{
		Code: "en", SignIn: "Sign in", SignInTo: "Sign in to open %s.", With: "Continue with %s",
		Redirecting: "Signed in", RedirectingText: "You are being redirected.", Continue: "Continue",
		SignedInAs: "You are signed in as %s.", SignOut: "Sign out", SignedOut: "Signed out", SignedOutText: "You are signed out of all applications in this browser.",
		SignOutQuestion: "Sign out?", SignOutText: "You will be signed out of all applications in this browser.",
		Denied: "No access", DeniedText: "You may not open %s.", OtherPerson: "Sign out and use another account",
		ContinueTo: "Continue to %s?", ContinueText: "You have not opened this application in this session before.", NoSite: "Unknown address", NoSiteText: "The address that you came from does not belong to an application here.",
		Failed: "Signing in failed", Expired: "The sign-in took too long, was used already, or the browser does not accept cookies.", Refused: "The sign-in provider did not confirm the sign-in.",
		Throttled: "Too many sign-ins have failed. Wait a few minutes.", Unavailable: "Signing in is not possible at the moment. Try again in a minute.",
		TryAgain: "Try again", Framed: "Sign-in required", FramedText: "Signing in does not work inside of another page.", Open: "Open in a new window", Home: "Home", NoWay: "There is no way to sign in at the moment.",
		NeedsHTTPS: "HTTPS required", NeedsHTTPSText: "This application can be used over HTTPS only.", WrongOrigin: "The request came from another page.", StartTitle: "Your account",
		LinkText: "Someone has shared this with you. Press the button to open it.", LinkExpired: "The link is not valid, has expired, or has been used.",
		Local: localEN,
	},
	{
		Code: "de", SignIn: "Anmelden", SignInTo: "Melden Sie sich an, um %s zu öffnen.", With: "Weiter mit %s",
		Redirecting: "Angemeldet", RedirectingText: "Sie werden weitergeleitet.", Continue: "Weiter",
		SignedInAs: "Sie sind angemeldet als %s.", SignOut: "Abmelden", SignedOut: "Abgemeldet", SignedOutText: "Sie sind in diesem Browser von allen Anwendungen abgemeldet.",
		SignOutQuestion: "Abmelden?", SignOutText: "Sie werden in diesem Browser von allen Anwendungen abgemeldet.",
		Denied: "Kein Zugriff", DeniedText: "Sie dürfen %s nicht öffnen.", OtherPerson: "Abmelden und ein anderes Konto verwenden",
		ContinueTo: "Weiter zu %s?", ContinueText: "Sie haben diese Anwendung in dieser Sitzung noch nicht geöffnet.", NoSite: "Unbekannte Adresse", NoSiteText: "Die Adresse, von der Sie kommen, gehört zu keiner Anwendung hier.",
		Failed: "Anmeldung fehlgeschlagen", Expired: "Die Anmeldung hat zu lange gedauert, wurde schon benutzt, oder der Browser nimmt keine Cookies an.", Refused: "Der Anmeldedienst hat die Anmeldung nicht bestätigt.",
		Throttled: "Zu viele Anmeldungen sind fehlgeschlagen. Warten Sie einige Minuten.", Unavailable: "Eine Anmeldung ist zurzeit nicht möglich. Versuchen Sie es in einer Minute erneut.",
		TryAgain: "Erneut versuchen", Framed: "Anmeldung erforderlich", FramedText: "Innerhalb einer anderen Seite ist keine Anmeldung möglich.", Open: "In neuem Fenster öffnen", Home: "Startseite", NoWay: "Zurzeit gibt es keine Möglichkeit, sich anzumelden.",
		NeedsHTTPS: "HTTPS erforderlich", NeedsHTTPSText: "Diese Anwendung ist nur über HTTPS erreichbar.", WrongOrigin: "Die Anfrage kam von einer anderen Seite.", StartTitle: "Ihr Konto",
		LinkText: "Das wurde mit Ihnen geteilt. Drücken Sie den Knopf, um es zu öffnen.", LinkExpired: "Der Link ist ungültig, abgelaufen oder schon benutzt.",
		Local: localDE,
	},
	{
		Code: "fr", SignIn: "Se connecter", SignInTo: "Connectez-vous pour ouvrir %s.", With: "Continuer avec %s",
		Redirecting: "Connecté", RedirectingText: "Vous allez être redirigé.", Continue: "Continuer",
		SignedInAs: "Vous êtes connecté en tant que %s.", SignOut: "Se déconnecter", SignedOut: "Déconnecté", SignedOutText: "Vous êtes déconnecté de toutes les applications dans ce navigateur.",
		SignOutQuestion: "Se déconnecter ?", SignOutText: "Vous serez déconnecté de toutes les applications dans ce navigateur.",
		Denied: "Accès refusé", DeniedText: "Vous n’êtes pas autorisé à ouvrir %s.", OtherPerson: "Se déconnecter et utiliser un autre compte",
		ContinueTo: "Continuer vers %s ?", ContinueText: "Vous n’avez pas encore ouvert cette application dans cette session.", NoSite: "Adresse inconnue", NoSiteText: "L’adresse d’où vous venez n’appartient à aucune application ici.",
		Failed: "Échec de la connexion", Expired: "La connexion a pris trop de temps, a déjà été utilisée, ou le navigateur n’accepte pas les cookies.", Refused: "Le fournisseur n’a pas confirmé la connexion.",
		Throttled: "Trop de connexions ont échoué. Attendez quelques minutes.", Unavailable: "La connexion est impossible pour le moment. Réessayez dans une minute.",
		TryAgain: "Réessayer", Framed: "Connexion requise", FramedText: "La connexion n’est pas possible à l’intérieur d’une autre page.", Open: "Ouvrir dans une nouvelle fenêtre", Home: "Accueil", NoWay: "Aucun moyen de connexion n’est disponible pour le moment.",
		NeedsHTTPS: "HTTPS requis", NeedsHTTPSText: "Cette application n’est accessible qu’en HTTPS.", WrongOrigin: "La requête vient d’une autre page.", StartTitle: "Votre compte",
		LinkText: "Ceci a été partagé avec vous. Appuyez sur le bouton pour l’ouvrir.", LinkExpired: "Le lien n’est pas valide, a expiré ou a déjà été utilisé.",
		Local: localFR,
	},
	{
		Code: "es", SignIn: "Iniciar sesión", SignInTo: "Inicie sesión para abrir %s.", With: "Continuar con %s",
		Redirecting: "Sesión iniciada", RedirectingText: "Se le está redirigiendo.", Continue: "Continuar",
		SignedInAs: "Ha iniciado sesión como %s.", SignOut: "Cerrar sesión", SignedOut: "Sesión cerrada", SignedOutText: "Ha cerrado la sesión de todas las aplicaciones en este navegador.",
		SignOutQuestion: "¿Cerrar sesión?", SignOutText: "Se cerrará la sesión de todas las aplicaciones en este navegador.",
		Denied: "Sin acceso", DeniedText: "No puede abrir %s.", OtherPerson: "Cerrar sesión y usar otra cuenta",
		ContinueTo: "¿Continuar a %s?", ContinueText: "Todavía no ha abierto esta aplicación en esta sesión.", NoSite: "Dirección desconocida", NoSiteText: "La dirección de la que viene no pertenece a ninguna aplicación de aquí.",
		Failed: "No se pudo iniciar sesión", Expired: "El inicio de sesión tardó demasiado, ya se usó o el navegador no acepta cookies.", Refused: "El proveedor no confirmó el inicio de sesión.",
		Throttled: "Han fallado demasiados inicios de sesión. Espere unos minutos.", Unavailable: "No es posible iniciar sesión en este momento. Inténtelo de nuevo en un minuto.",
		TryAgain: "Intentar de nuevo", Framed: "Se requiere iniciar sesión", FramedText: "No se puede iniciar sesión dentro de otra página.", Open: "Abrir en una ventana nueva", Home: "Inicio", NoWay: "En este momento no hay forma de iniciar sesión.",
		NeedsHTTPS: "Se requiere HTTPS", NeedsHTTPSText: "Esta aplicación solo está disponible por HTTPS.", WrongOrigin: "La solicitud vino de otra página.", StartTitle: "Su cuenta",
		LinkText: "Alguien ha compartido esto con usted. Pulse el botón para abrirlo.", LinkExpired: "El enlace no es válido, ha caducado o ya se ha usado.",
		Local: localES,
	},
}

// Choose returns the texts of the language that an Accept-Language field prefers among
// those that there are (RFC 9110, section 12.5.4).
func Choose(accept string) *Texts {
	best, weight := &languages[0], 0.0
	for part := range strings.SplitSeq(accept, ",") {
		tag, params, _ := strings.Cut(part, ";")
		q := 1.0
		if name, value, ok := strings.Cut(strings.TrimSpace(params), "="); ok && strings.TrimSpace(name) == "q" {
			var err error
			if q, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil {
				continue
			}
		}
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		for i := range languages {
			if languages[i].Code == primary && q > weight {
				best, weight = &languages[i], q
			}
		}
	}
	return best
}

// Fill puts a name into a text.
func Fill(text, name string) string { return strings.Replace(text, "%s", name, 1) }
