# needs: node
# prints: served by node: 200 hello
# prints: websocket-like upgrade: 101
node - <<'END'
const http = require('http')
const s = http.createServer((q, r) => r.end('hello'))
s.on('upgrade', (q, sock) => { sock.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n') })
s.listen(0, 'localhost', () => {
  const { port } = s.address()
  http.get({ host: 'localhost', port }, r => {
    r.on('data', d => {
      console.log('served by node:', r.statusCode, d.toString())
      http.request({ host: 'localhost', port, headers: { Connection: 'Upgrade', Upgrade: 'x' } })
        .on('upgrade', r => { console.log('websocket-like upgrade:', r.statusCode); s.close(); process.exit() }).end()
    })
  })
})
END
