# needs: node
# prints: child: hi
# prints: exec: 5
# prints: forked 8
# prints: worker 49
# prints: file: written
cat >n.js <<'END'
const { execFileSync, execSync, fork } = require('child_process')
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads')
const fs = require('fs')
if (process.argv[2] === 'child') {
  process.on('message', n => { process.send(n * 2); process.disconnect() })
} else if (!isMainThread) {
  parentPort.postMessage(workerData * workerData)
} else {
  console.log('child:', execFileSync('echo', ['hi']).toString().trim())
  console.log('exec:', execSync('expr 2 + 3').toString().trim())
  const kid = fork(__filename, ['child'])
  kid.send(4)
  kid.on('message', n => {
    console.log('forked', n)
    new Worker(__filename, { workerData: 7 }).on('message', n => {
      console.log('worker', n)
      fs.promises.writeFile('f', 'written').then(() => fs.promises.readFile('f', 'utf8')).then(s => console.log('file:', s))
    })
  })
}
END
node n.js
