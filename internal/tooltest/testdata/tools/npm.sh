# needs: npm node
# prints: built by npm run
# prints: script sees m@1.0.0
mkdir n && cd n
cat >package.json <<'END'
{"name": "m", "version": "1.0.0", "scripts": {"build": "node -e \"console.log('built by npm run')\" && echo script sees $npm_package_name@$npm_package_version"}}
END
npm run build
