#!/bin/sh
# May this tier roll out? Exit 0 approved, 1 rejected, 2 inconclusive, 3 could not ask.
# Needs TIERGATE_URL, TIERGATE_TOKEN (scope read), curl 7.83 or newer (an older one always ends with 3), and:
# gate.sh MODEL TIER [SHA256]
set -u
: "${TIERGATE_URL:?}" "${TIERGATE_TOKEN:?}" "${1:?model}" "${2:?tier}"
url="$TIERGATE_URL/gates/plain/models/$1/tiers/$2${3+?artifact=$3}"
answer=$(curl --silent --show-error --max-time 10 --header "Authorization: Bearer $TIERGATE_TOKEN" \
  --write-out '\n%{http_code} %header{tiergate-state}' "$url") || exit 3
echo "$answer" | sed '$d'
# The header says that it was Tiergate who judged: 403 and 409 may come from anything on the way.
case $(echo "$answer" | tail -n 1) in
  "200 approved") exit 0 ;;
  "403 rejected") exit 1 ;;
  "409 inconclusive") exit 2 ;;
  *) exit 3 ;;
esac
