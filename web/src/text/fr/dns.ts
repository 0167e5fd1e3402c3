import type { Text } from '..'

/** The form of a provider of the DNS challenge. */
export const dns: Text['dns'] = {
  provider: 'Fournisseur DNS',
  choose: 'Rechercher un fournisseur',
  noProvider: 'Fournisseur inconnu. Choisissez httpreq ou exec pour utiliser le vôtre.',
  where: (name) => `Où les obtenir : ${name}`,
  notes: {
    'acme-dns': 'Inscrivez-vous sur votre serveur acme-dns et faites pointer _acme-challenge vers lui par un CNAME.',
    cloudflare: 'Créez un jeton avec les droits Zone: Read et DNS: Edit pour la zone.',
    dnsimple: 'Un jeton de compte, pas d’utilisateur.',
    duckdns: 'Un domaine a un seul enregistrement TXT : une seule commande à la fois.',
    exec: 'Exécute la commande ci-dessous avec present NOM VALEUR, puis cleanup NOM VALEUR.',
    gandi: 'Un jeton d’accès personnel avec accès à LiveDNS.',
    godaddy: 'GoDaddy ne propose son API qu’aux comptes avec plusieurs domaines.',
    google: 'Le contenu du fichier de clé JSON. Le compte de service a besoin du rôle Administrateur DNS.',
    hetzner: 'Un jeton en lecture et écriture du projet Cloud qui contient la zone.',
    httpreq: 'headgate envoie POST /present et /cleanup avec fqdn et value à ce service.',
    ionos: 'Le préfixe et le secret de la clé, séparés par un point.',
    linode: 'Un jeton avec la portée domains:read_write.',
    namecheap: 'L’IP client est l’adresse de cette machine autorisée chez Namecheap. Chaque changement réécrit tous les enregistrements du domaine.',
    netcup: 'Les serveurs de noms peuvent prendre 15 minutes : réglez propagation sur 30m.',
    ovh: 'Une clé avec les droits GET, POST et DELETE sur /domain/zone/*.',
    porkbun: 'Activez aussi l’accès API pour le domaine.',
    rfc2136: 'Un serveur de noms qui accepte les mises à jour dynamiques.',
    route53: 'Une clé d’accès avec route53:ListHostedZonesByName, ListResourceRecordSets, ChangeResourceRecordSets et GetChange.',
    vultr: 'Autorisez l’adresse de cette machine dans le contrôle d’accès de la clé.',
  },
}
