package protected

// HarmlessDots are names that begin with a dot and that tools make every day: settings of formatters and linters, which act when they are told
// to, ignore files, caches, environments, what a package ships. "*" at the end stands for any ending. A new name that is neither here nor
// in Names is named in a run's report.
var HarmlessDots = [...]string{
	".gitignore", ".gitattributes", ".gitkeep", ".gitlab-ci.yml", ".env", ".env.*", ".env-*", ".flaskenv", ".editorconfig", ".mailmap", ".dockerignore", ".containerignore", ".npmignore", ".npmrc", ".eslint*", ".prettier*", ".stylelint*",
	".markdownlint*", ".remarkrc*", ".yamllint*", ".rubocop*", ".flake8", ".pylintrc", ".isort.cfg", ".style.yapf", ".coveragerc", ".ruff*", ".black*", ".clang-format*", ".clang-tidy", ".clangd", ".rustfmt.toml", ".clippy.toml",
	".golangci.*", ".goreleaser.*", ".shellcheckrc", ".hadolint.*", ".sqlfluff", ".swiftlint.yml", ".swiftformat", ".scalafmt.conf", ".php-cs-fixer*", ".phpunit*", ".babelrc*", ".swcrc", ".browserslistrc", ".postcssrc*", ".mocharc*",
	".nycrc*", ".c8rc*", ".jshintrc", ".jscsrc", ".terserrc*", ".parcelrc", ".sassrc*", ".size-limit*", ".changeset", ".releaserc*", ".commitlintrc*", ".czrc", ".versionrc*", ".travis.yml", ".circleci", ".appveyor.yml",
	".azure-pipelines*", ".drone.yml", ".readthedocs.y*", ".codecov.yml", ".dependabot", ".renovaterc*", ".snyk", ".nojekyll", ".htaccess", ".well-known", ".placeholder", ".keep", ".helmignore", ".terraform*", ".tflint.hcl",
	".venv*", ".cache", ".parcel-cache", ".sass-cache", ".eslintcache", ".tsbuildinfo", ".pytest_cache", ".mypy_cache", ".tox", ".nox", ".hypothesis", ".coverage*", ".nyc_output", ".ipynb_checkpoints", ".eggs", ".pdm-build", ".pixi",
	".next", ".nuxt", ".output", ".svelte-kit", ".astro", ".angular", ".vite*", ".turbo", ".nx", ".docusaurus", ".vercel", ".netlify", ".serverless", ".aws-sam", ".expo", ".wrangler", ".gradle", ".kotlin", ".mvn", ".m2", ".ivy2", ".bloop", ".metals",
	".dart_tool", ".flutter*", ".build", ".swiftpm", ".stack-work", ".cabal-sandbox", ".elixir_ls", ".zig-cache", ".lake", ".ccls-cache", ".ccache", ".cargo", ".rustc_info.json", ".yarn*", ".pnp.*", ".pnpm*", ".package-lock.json", ".bin", ".modules.yaml",
	".bundle", ".bsp", ".config", ".github", ".vim", ".local", ".tmp*", ".temp*", ".DS_Store", ".nfs*", ".fuse_hidden*", ".goutputstream-*", ".#*", ".deps", ".libs", ".dirstamp", ".ninja_*", ".mk", ".cmake", ".conan",
}
