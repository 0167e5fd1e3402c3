import qrcode from 'qrcode-generator'

/** A QR code, drawn here: its text goes to nobody. It is black on white, also in the dark. */
export function QR({ text, label, size = 200 }: { text: string; label: string; size?: number }) {
  const code = qrcode(0, 'M')
  code.addData(text)
  code.make()
  const n = code.getModuleCount()
  const edge = 4
  let path = ''
  for (let y = 0; y < n; y++) for (let x = 0; x < n; x++) if (code.isDark(y, x)) path += `M${x + edge} ${y + edge}h1v1h-1z`
  return (
    <svg role="img" aria-label={label} width={size} height={size} viewBox={`0 0 ${n + 2 * edge} ${n + 2 * edge}`} shapeRendering="crispEdges" className="qr">
      <rect width="100%" height="100%" fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  )
}
