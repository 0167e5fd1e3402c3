import type { Text } from '..'

/** The form of a provider of the DNS challenge. */
export const dns: Text['dns'] = {
  provider: 'Proveedor DNS',
  choose: 'Buscar un proveedor',
  noProvider: 'No hay tal proveedor. Elija httpreq o exec para usar el suyo.',
  where: (name) => `Dónde obtenerlas: ${name}`,
  notes: {
    'acme-dns': 'Regístrese en su servidor acme-dns y apunte _acme-challenge hacia él con un CNAME.',
    cloudflare: 'Cree un token con los permisos Zone: Read y DNS: Edit para la zona.',
    dnsimple: 'Un token de cuenta, no de usuario.',
    duckdns: 'Un dominio tiene un solo registro TXT, así que solo se hace un pedido a la vez.',
    exec: 'Ejecuta la orden de abajo con present NOMBRE VALOR y después con cleanup NOMBRE VALOR.',
    gandi: 'Un token de acceso personal con acceso a LiveDNS.',
    godaddy: 'GoDaddy ofrece su API solo a cuentas con varios dominios.',
    google: 'El contenido del archivo de clave JSON. La cuenta de servicio necesita el rol Administrador de DNS.',
    hetzner: 'Un token de lectura y escritura del proyecto de Cloud que contiene la zona.',
    httpreq: 'headgate envía POST /present y /cleanup con fqdn y value a este servicio.',
    ionos: 'El prefijo y el secreto de la clave, unidos por un punto.',
    linode: 'Un token con el ámbito domains:read_write.',
    namecheap: 'La IP del cliente es la dirección de esta máquina permitida en Namecheap. Cada cambio reescribe todos los registros del dominio.',
    netcup: 'Los servidores de nombres pueden tardar 15 minutos: ponga propagation en 30m.',
    ovh: 'Una clave con los derechos GET, POST y DELETE en /domain/zone/*.',
    porkbun: 'Active también el acceso a la API para el dominio.',
    rfc2136: 'Un servidor de nombres que acepta actualizaciones dinámicas.',
    route53: 'Una clave de acceso con route53:ListHostedZonesByName, ListResourceRecordSets, ChangeResourceRecordSets y GetChange.',
    vultr: 'Permita la dirección de esta máquina en el control de acceso de la clave.',
  },
}
