#!/usr/bin/env bash
# The website: the guide, the documents, the packages and the examples, by Hugo and its theme Hextra. Both, and what
# renders package documentation and checks links, are tools of internal/tools/site/go.mod. The pages are in $SITE.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
SITE=${SITE:-.site}
tools="$(pwd)/.tools/site"
mkdir -p "$tools"
(cd internal/tools/site && $GO build -o "$tools/" github.com/gohugoio/hugo github.com/princjef/gomarkdoc/cmd/gomarkdoc github.com/wjdp/htmltest)
theme=$(cd internal/tools/site && $GO mod download github.com/imfing/hextra && $GO list -m -f '{{.Dir}}' github.com/imfing/hextra)
rm -rf "$SITE"
mkdir -p "$SITE/static" "$SITE/content"
find docs -name "*.svg" -exec cp {} "$SITE/static/" \;
if [ -n "${PICTURES-1}" ]; then $GO run ./examples/vae -out "$SITE/static/vae.png"; fi
$GO run ./docs/site -gomarkdoc "$tools/gomarkdoc" -content "$SITE/content"
site=$(cd "$SITE" && pwd)
"$tools/hugo" --quiet --source docs/site --contentDir "$site/content" --themesDir "$(dirname "$theme")" --theme "$(basename "$theme")" \
	--destination "$site/public" --cacheDir "$site/cache" --config "hugo.toml" --noBuildLock
cp "$site"/static/* "$site/public/"
(cd "$site" && "$tools/htmltest" --conf "$OLDPWD/docs/site/htmltest.yml" public)
echo "the website is in $SITE/public"
