package page

// Local are the texts for people kept by headgate, in one language.
type Local struct {
	Login             string
	Password          string
	OneTimeCode       string
	CodeHint          string
	Credentials       string
	Or                string
	Welcome           string
	WelcomeText       string
	NewPassword       string
	PasswordHint      string
	BadPassword       string
	BadCode           string
	Scan              string
	QRCode            string
	OpenAuthenticator string
	OrEnter           string
	NewCode           string
	Save              string
	BadLink           string
	Recovery          string
	RecoveryText      string
	MySites           string
	NoSites           string
	SiteDown          string
	SiteMaintenance   string
	PasskeySignIn     string
	PasskeyFailed     string
	PasskeyRefused    string
	NewPasskey        string
	AddPasskey        string
	Passkeys          string
	PasskeyOf         string
	RemovePasskey     string
	OrPassword        string
}

var localEN = Local{
	Login:             "Name or e-mail address",
	Password:          "Password",
	OneTimeCode:       "Code of your authenticator",
	CodeHint:          "Six digits, or a recovery code. A code can be used once.",
	Credentials:       "The name, the password or the code is wrong.",
	Or:                "Other ways",
	Welcome:           "Welcome, %s",
	WelcomeText:       "Choose how you will sign in.",
	NewPassword:       "New password",
	PasswordHint:      "At least 10 characters that are hard to guess, such as several words.",
	BadPassword:       "Choose another password: at least 10 characters that are hard to guess.",
	BadCode:           "The code is wrong. Check the clock of your phone, and use the newest code.",
	Scan:              "Scan the QR code with an authenticator app.",
	QRCode:            "QR code for the authenticator",
	OpenAuthenticator: "Open in an app on this device",
	OrEnter:           "Or enter this key:",
	NewCode:           "Code that the app shows",
	Save:              "Save and sign in",
	BadLink:           "This link is not valid, was used already, or has expired. Request a new one.",
	Recovery:          "Recovery codes",
	RecoveryText:      "Keep these codes in a safe place. Each of them replaces the code of the authenticator once, for example when your phone is lost. They are not shown again.",
	MySites:           "Your applications",
	NoSites:           "There is no application that you may open.",
	SiteDown:          "Not available now",
	SiteMaintenance:   "Under maintenance",
	PasskeySignIn:     "Sign in with a passkey",
	PasskeyFailed:     "The passkey could not be used. Try again, or choose another way.",
	PasskeyRefused:    "The passkey was not accepted. It may have been removed, or it belongs to another address.",
	NewPasskey:        "Use a passkey",
	AddPasskey:        "Add a passkey",
	Passkeys:          "Passkeys",
	PasskeyOf:         "Added on %s",
	RemovePasskey:     "Remove passkey added on %s",
	OrPassword:        "Or choose a password and an authenticator.",
}

var localDE = Local{
	Login:             "Name oder E-Mail-Adresse",
	Password:          "Passwort",
	OneTimeCode:       "Code Ihrer Authenticator-App",
	CodeHint:          "Sechs Ziffern oder ein Wiederherstellungscode. Ein Code gilt einmal.",
	Credentials:       "Der Name, das Passwort oder der Code ist falsch.",
	Or:                "Andere Wege",
	Welcome:           "Willkommen, %s",
	WelcomeText:       "Wählen Sie, wie Sie sich anmelden.",
	NewPassword:       "Neues Passwort",
	PasswordHint:      "Mindestens 10 Zeichen, die schwer zu erraten sind, etwa mehrere Wörter.",
	BadPassword:       "Wählen Sie ein anderes Passwort: mindestens 10 Zeichen, die schwer zu erraten sind.",
	BadCode:           "Der Code ist falsch. Prüfen Sie die Uhr Ihres Telefons und verwenden Sie den neuesten Code.",
	Scan:              "Scannen Sie den QR-Code mit einer Authenticator-App.",
	QRCode:            "QR-Code für die Authenticator-App",
	OpenAuthenticator: "In einer App auf diesem Gerät öffnen",
	OrEnter:           "Oder geben Sie diesen Schlüssel ein:",
	NewCode:           "Code, den die App anzeigt",
	Save:              "Speichern und anmelden",
	BadLink:           "Dieser Link ist ungültig, wurde schon benutzt oder ist abgelaufen. Bitten Sie um einen neuen.",
	Recovery:          "Wiederherstellungscodes",
	RecoveryText:      "Bewahren Sie diese Codes sicher auf. Jeder ersetzt einmal den Code der Authenticator-App, etwa wenn Ihr Telefon verloren ist. Sie werden nicht noch einmal angezeigt.",
	MySites:           "Ihre Anwendungen",
	NoSites:           "Es gibt keine Anwendung, die Sie öffnen dürfen.",
	SiteDown:          "Zurzeit nicht verfügbar",
	SiteMaintenance:   "In Wartung",
	PasskeySignIn:     "Mit einem Passkey anmelden",
	PasskeyFailed:     "Der Passkey konnte nicht verwendet werden. Versuchen Sie es erneut oder wählen Sie einen anderen Weg.",
	PasskeyRefused:    "Der Passkey wurde nicht angenommen. Er wurde vielleicht entfernt oder gehört zu einer anderen Adresse.",
	NewPasskey:        "Einen Passkey verwenden",
	AddPasskey:        "Passkey hinzufügen",
	Passkeys:          "Passkeys",
	PasskeyOf:         "Hinzugefügt am %s",
	RemovePasskey:     "Passkey vom %s entfernen",
	OrPassword:        "Oder wählen Sie ein Passwort und eine Authenticator-App.",
}

var localFR = Local{
	Login:             "Nom ou adresse e-mail",
	Password:          "Mot de passe",
	OneTimeCode:       "Code de votre application d’authentification",
	CodeHint:          "Six chiffres, ou un code de récupération. Un code ne sert qu’une fois.",
	Credentials:       "Le nom, le mot de passe ou le code est incorrect.",
	Or:                "Autres moyens",
	Welcome:           "Bienvenue, %s",
	WelcomeText:       "Choisissez comment vous vous connecterez.",
	NewPassword:       "Nouveau mot de passe",
	PasswordHint:      "Au moins 10 caractères difficiles à deviner, par exemple plusieurs mots.",
	BadPassword:       "Choisissez un autre mot de passe : au moins 10 caractères difficiles à deviner.",
	BadCode:           "Le code est incorrect. Vérifiez l’horloge de votre téléphone et utilisez le code le plus récent.",
	Scan:              "Scannez le code QR avec une application d’authentification.",
	QRCode:            "Code QR pour l’application d’authentification",
	OpenAuthenticator: "Ouvrir dans une application de cet appareil",
	OrEnter:           "Ou saisissez cette clé :",
	NewCode:           "Code affiché par l’application",
	Save:              "Enregistrer et se connecter",
	BadLink:           "Ce lien n’est pas valide, a déjà été utilisé ou a expiré. Demandez-en un nouveau.",
	Recovery:          "Codes de récupération",
	RecoveryText:      "Conservez ces codes en lieu sûr. Chacun remplace une fois le code de l’application, par exemple si vous perdez votre téléphone. Ils ne seront plus affichés.",
	MySites:           "Vos applications",
	NoSites:           "Il n’y a aucune application que vous puissiez ouvrir.",
	SiteDown:          "Indisponible pour le moment",
	SiteMaintenance:   "En maintenance",
	PasskeySignIn:     "Se connecter avec une clé d’accès",
	PasskeyFailed:     "La clé d’accès n’a pas pu être utilisée. Réessayez ou choisissez un autre moyen.",
	PasskeyRefused:    "La clé d’accès n’a pas été acceptée. Elle a peut-être été supprimée ou appartient à une autre adresse.",
	NewPasskey:        "Utiliser une clé d’accès",
	AddPasskey:        "Ajouter une clé d’accès",
	Passkeys:          "Clés d’accès",
	PasskeyOf:         "Ajoutée le %s",
	RemovePasskey:     "Supprimer la clé d’accès du %s",
	OrPassword:        "Ou choisissez un mot de passe et une application d’authentification.",
}

var localES = Local{
	Login:             "Nombre o correo electrónico",
	Password:          "Contraseña",
	OneTimeCode:       "Código de su autenticador",
	CodeHint:          "Seis cifras, o un código de recuperación. Cada código sirve una vez.",
	Credentials:       "El nombre, la contraseña o el código es incorrecto.",
	Or:                "Otras formas",
	Welcome:           "Le damos la bienvenida, %s",
	WelcomeText:       "Elija cómo iniciará sesión.",
	NewPassword:       "Contraseña nueva",
	PasswordHint:      "Al menos 10 caracteres difíciles de adivinar, por ejemplo varias palabras.",
	BadPassword:       "Elija otra contraseña: al menos 10 caracteres difíciles de adivinar.",
	BadCode:           "El código es incorrecto. Compruebe el reloj de su teléfono y use el código más reciente.",
	Scan:              "Escanee el código QR con una aplicación de autenticación.",
	QRCode:            "Código QR para el autenticador",
	OpenAuthenticator: "Abrir en una aplicación de este dispositivo",
	OrEnter:           "O introduzca esta clave:",
	NewCode:           "Código que muestra la aplicación",
	Save:              "Guardar e iniciar sesión",
	BadLink:           "Este enlace no es válido, ya se usó o ha caducado. Pida uno nuevo.",
	Recovery:          "Códigos de recuperación",
	RecoveryText:      "Guarde estos códigos en un lugar seguro. Cada uno sustituye una vez al código del autenticador, por ejemplo si pierde el teléfono. No se volverán a mostrar.",
	MySites:           "Sus aplicaciones",
	NoSites:           "No hay ninguna aplicación que pueda abrir.",
	SiteDown:          "No disponible por ahora",
	SiteMaintenance:   "En mantenimiento",
	PasskeySignIn:     "Iniciar sesión con una llave de acceso",
	PasskeyFailed:     "No se pudo usar la llave de acceso. Inténtelo de nuevo o elija otra forma.",
	PasskeyRefused:    "No se aceptó la llave de acceso. Quizá se eliminó o pertenece a otra dirección.",
	NewPasskey:        "Usar una llave de acceso",
	AddPasskey:        "Añadir una llave de acceso",
	Passkeys:          "Llaves de acceso",
	PasskeyOf:         "Añadida el %s",
	RemovePasskey:     "Eliminar la llave de acceso del %s",
	OrPassword:        "O elija una contraseña y un autenticador.",
}
